use super::near;

#[test]
fn near_names_are_those_of_one_slip_or_one_beginning() {
    let names = ["tenant-7", "tenant-71", "tenant-8", "nightly", "Tenant-9", "backup"];
    let near = |asked| near(asked, names.into_iter());
    assert_eq!(near("tenant-7x"), ["tenant-7", "tenant-71", "Tenant-9"]);
    assert_eq!(near("nihgtly"), ["nightly"]);
    assert_eq!(near("TENANT-8")[0], "tenant-8");
    assert_eq!(near("back"), ["backup"]);
    assert_eq!(near("something else"), Vec::<String>::new());
}
