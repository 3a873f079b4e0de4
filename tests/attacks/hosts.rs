//! Measuring hosts, source trees and packages of strangers.
