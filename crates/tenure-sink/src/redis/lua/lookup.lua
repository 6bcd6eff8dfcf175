-- Looks for the effect of an operation, for a token that is admitted. ARGV[5] the operation.
local no = admit()
if no then return no end
local lost, state, epoch, digest, outcome = recall(ARGV[5])
if lost then return lost end
if not state then return {'absent'} end
if state == 'unknown' then return {'broken', epoch, digest, outcome} end
return {'found', epoch, digest, outcome}
