//! The protocol under a model and under random inputs.
