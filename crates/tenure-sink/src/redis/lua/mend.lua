-- Says what became of an operation that broke off, once a person or a rule has found out. ARGV[5] the operation, [6] its
-- new state, [7] its outcome.
local no, seal_no = admit()
if no then return no end
local lost, state, epoch, digest, outcome = recall(ARGV[5])
if lost then return lost end
if not state then return {'absent'} end
if state ~= 'unknown' then return {'found', epoch, digest, outcome} end
local put = remember(ARGV[5], ARGV[6], epoch, seal_no, digest, ARGV[7])
if type(put) == 'table' then return {'unread', put.err} end
return {'mended'}
