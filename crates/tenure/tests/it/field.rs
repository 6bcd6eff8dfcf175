//! Reports from the field, each with its story.
