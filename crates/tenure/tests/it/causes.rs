//! One test per cause of a loss. Each is counted under its own reason, and none as a failure of the work.
