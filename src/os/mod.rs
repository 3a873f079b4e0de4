//! Placeholder head of os.
