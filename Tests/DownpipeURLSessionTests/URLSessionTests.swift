import Testing

/// All tests of this plug-in, one after the other: on Linux every URLSession of a process shares one thread, and
/// tests that block it on purpose would be felt by the others.
@Suite(.serialized, .timeLimit(.minutes(2)))
enum URLSessionTests {}
