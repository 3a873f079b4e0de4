//! Text, sizes and silence from outside: escaped where they leave, bounded where they enter.
