//! Placeholder head of dbms.
