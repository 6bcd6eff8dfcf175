# Ends what a test process leaves behind. stdin is a pipe that the test process holds: it tells which processes were
# started ("pid N") and which ended ("gone N"), and closes when the test process is no more, however it ended.
# $1 is the folder of all servers of that process.
trap '' HUP INT TERM
root=$1
pids=
while read -r word pid; do
    case $word in
    pid) pids="$pids $pid" ;;
    gone)
        rest=
        for each in $pids; do
            [ "$each" = "$pid" ] || rest="$rest $each"
        done
        pids=$rest
        ;;
    esac
done

children() {
    for stat in /proc/[0-9]*/stat; do
        line=
        read -r line <"$stat" || continue
        # After the name, which may hold anything: the state and the parent.
        set -- "$1" ${line##*) }
        [ "$3" != "$1" ] || echo "${line%% *}"
    done
}

for pid in $pids; do
    # One that is stopped starts no further child.
    kill -STOP "$pid"
    kill -KILL $(children "$pid") "$pid"
done
# A killed PostgreSQL leaves a small piece of shared memory, and notes its number.
for note in "$root"/*/data/postmaster.pid; do
    [ -e "$note" ] || continue
    memory=$(sed -n '7s/.* //p' "$note")
    [ -z "$memory" ] || ipcrm -m "$memory"
done
# What was killed may still be writing its last file.
for again in 1 2 3 4 5; do
    rm -rf "$root" && break
    sleep 1
done
