//! Effects as plain files.
