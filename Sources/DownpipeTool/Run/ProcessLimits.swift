import Foundation

/// Ends the process with a message if the system does not give it what the runtime cannot do without.
///
/// Dispatch waits for ever where it cannot create a thread, and the runtime ends a process without memory or descriptors
/// with a crash. So the limits are tried out before either is used.
enum ProcessLimits {
  /// The threads that a command needs beside the first: one for each core, and those of queues, the source and Dispatch.
  static let threads = 12 + ProcessInfo.processInfo.activeProcessorCount

  /// The address space that a command needs beside the stacks of its threads, in bytes.
  private static let space = 192 << 20

  /// Checks the limits.
  static func check() {
    if let least = DescriptorLimit.missing {
      fail("the limit of open files is too low: allow \(least) at least (ulimit -n \(least))")
    }
    #if os(Linux)
      // libdispatch looks its threads up there, and ends a process that it does not find.
      guard access("/proc/self/stat", R_OK) == 0 else {
        fail("/proc is not mounted, or is that of other processes: mount it (mount -t proc proc /proc)")
      }
    #endif
    guard LimitTrial.canStart(threads) else {
      fail(
        "the limit of processes and threads is too low: allow \(threads + 1) threads for this command, beside those of "
          + "the user's other processes (ulimit -u, or the limit of the container)")
    }
    guard LimitTrial.limitArenas() else { return FreedMemory.keep() }
    let needed = threads * LimitTrial.stackSize + space
    guard LimitTrial.canReserve(needed) else {
      fail("the limit of memory is too low: allow \(needed >> 20) MiB more (ulimit -v)")
    }
  }

  /// Written without ``OutputFile``, which needs a thread.
  private static func fail(_ message: String) -> Never {
    let line = Array("downpipe: \(message)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    exit(2)
  }
}
