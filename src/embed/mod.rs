//! Placeholder head of embed.
