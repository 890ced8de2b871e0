import HangLimit
import Testing

/// All tests of this plug-in, serialized: on Linux all URLSessions of a process share one thread, and some tests block
/// it on purpose.
@Suite(.serialized, .endsHangs)
enum URLSessionTests {}
