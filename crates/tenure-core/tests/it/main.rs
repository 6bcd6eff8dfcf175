//! The protocol under a model and under random inputs.

#[cfg(test)]
mod model;
