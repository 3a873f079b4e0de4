//! Placeholder head of datagen.
