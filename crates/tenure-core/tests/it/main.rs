//! The protocol under a model and under random inputs.

#[cfg(test)]
mod laws;
#[cfg(test)]
mod model;
