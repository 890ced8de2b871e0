internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Runs work that may block its thread, at most some at a time, on threads that nothing else needs.
///
/// A concurrent queue of Dispatch does not do for this: on Linux it shares the threads of Swift's own tasks, one for each
/// core, so that as many blocked calls as there are cores stop every task of the process.
package final class BlockingQueue: Sendable {
  private struct State {
    var running = 0
    /// In the order of arrival.
    var waiting: [@Sendable () -> Void] = []
  }

  private let width: Int
  private let state = Mutex(State())

  /// Creates a queue that uses at most `width` threads at the same time.
  package init(width: Int) { self.width = width }

  /// Starts the work now, or after earlier work if `width` threads are blocked. It is released as soon as it has ended.
  package func run(_ work: @escaping @Sendable () -> Void) {
    let starts = state.withLock { state in
      state.waiting.append(work)
      guard state.running < width else { return false }
      state.running += 1
      return true
    }
    if starts { WorkerThread.run { [self] in while runNext() {} } }
  }

  private func runNext() -> Bool {
    let work: (@Sendable () -> Void)? = state.withLock { state in
      if state.waiting.isEmpty {
        state.running -= 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    work?()
    return work != nil
  }
}

/// A thread that waits for its next work.
private final class WorkerThread: Sendable {
  /// Those without work, the latest last. More than the most that are kept end.
  private static let idle = Mutex<[WorkerThread]>([])
  private static let mostIdle = 16

  private let work: Mutex<(@Sendable () -> Void)?>
  private let wake = DispatchSemaphore(value: 0)

  private init(_ work: @escaping @Sendable () -> Void) { self.work = Mutex(work) }

  static func run(_ work: @escaping @Sendable () -> Void) {
    if let thread = idle.withLock({ $0.popLast() }) {
      thread.work.withLock { $0 = work }
      thread.wake.signal()
    } else {
      WorkerThread(work).start()
    }
  }

  private func start() {
    let reference = Unmanaged.passRetained(self)
    #if canImport(Darwin)
      var thread: pthread_t?
    #else
      var thread = pthread_t()
    #endif
    let status = pthread_create(&thread, nil, { WorkerThread.main($0) }, reference.toOpaque())
    guard status == 0 else {
      // The system has no more threads: better late than never.
      reference.release()
      return DispatchQueue.global().async { self.takeWork()?() }
    }
    #if canImport(Darwin)
      if let thread { pthread_detach(thread) }
    #else
      pthread_detach(thread)
    #endif
  }

  private static func main(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context { Unmanaged<WorkerThread>.fromOpaque(context).takeRetainedValue().runAll() }
    return nil
  }

  private func runAll() {
    while runNext() {
      let isKept = Self.idle.withLock { idle in
        if idle.count < Self.mostIdle { idle.append(self) }
        return idle.last === self
      }
      guard isKept else { return }
      wake.wait()
    }
  }

  /// A function of its own, so that nothing keeps the work, and with it open files, while the thread waits.
  private func runNext() -> Bool {
    guard let work = takeWork() else { return false }
    work()
    return true
  }

  private func takeWork() -> (@Sendable () -> Void)? {
    work.withLock { work in
      defer { work = nil }
      return work
    }
  }
}
