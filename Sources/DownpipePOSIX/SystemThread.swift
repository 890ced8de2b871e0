package import DownpipeCore
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A thread of its own for work that waits, whose start fails with an error: Foundation's `Thread` does not tell that the
/// system has refused it, and its work is never done.
package enum SystemThread {
  private final class Work: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }

    func run() {
      Thread.current.name = name
      body()
    }
  }

  /// Starts a thread.
  ///
  /// - Throws: ``DownloadError`` with `.tooManyOpenFiles`, the code for used up resources of the process.
  package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws(DownloadError) {
    let work = Unmanaged.passRetained(Work(name: name, body: body))
    var thread = newThread()
    let code = create(&thread, nil, work.toOpaque()) { context in
      if let context = context as UnsafeMutableRawPointer? {
        Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
      }
      return nil
    }
    guard code == 0 else {
      work.release()
      throw DownloadError(
        .tooManyOpenFiles,
        "no thread could be started: \(String(cString: strerror(code))): raise the limit of processes and threads "
          + "(ulimit -u, or the limit of the container) or of memory")
    }
    if let thread = thread as pthread_t? { pthread_detach(thread) }
  }

  // MARK: What differs between systems

  #if canImport(Darwin)
    private static func newThread() -> pthread_t? { nil }

    private static func create(
      _ thread: inout pthread_t?, _ attributes: UnsafePointer<pthread_attr_t>?, _ context: UnsafeMutableRawPointer,
      _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
    ) -> CInt { pthread_create(&thread, attributes, body, context) }
  #else
    private static func newThread() -> pthread_t { pthread_t() }

    private static func create(
      _ thread: inout pthread_t, _ attributes: UnsafePointer<pthread_attr_t>?, _ context: UnsafeMutableRawPointer,
      _ body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    ) -> CInt { pthread_create(&thread, attributes, body, context) }
  #endif
}
