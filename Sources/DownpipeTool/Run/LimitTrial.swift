import Foundation

/// Tries out what the system lets the process have.
enum LimitTrial {
  /// Whether the system lets the process have so many more threads at once. They end before this returns.
  static func canStart(_ count: Int) -> Bool {
    let gate = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(gate, nil)
    defer {
      pthread_mutex_destroy(gate)
      gate.deallocate()
    }
    let attributes = makeAttributes()
    defer { free(attributes) }
    // Small: only the number is tried out here.
    pthread_attr_setstacksize(attributes, 64 << 10)
    var threads: [pthread_t] = []
    pthread_mutex_lock(gate)
    for _ in 0..<count {
      var thread = newThread()
      let code = create(&thread, attributes, gate) { context in
        if let gate = (context as UnsafeMutableRawPointer?)?.assumingMemoryBound(to: pthread_mutex_t.self) {
          pthread_mutex_lock(gate)
          pthread_mutex_unlock(gate)
        }
        return nil
      }
      guard code == 0, let thread = thread as pthread_t? else { break }
      threads.append(thread)
    }
    pthread_mutex_unlock(gate)
    for thread in threads { pthread_join(thread, nil) }
    return threads.count == count
  }

  /// The size of the stack of a thread, in bytes.
  static var stackSize: Int {
    let attributes = makeAttributes()
    defer { free(attributes) }
    var size = 0
    return pthread_attr_getstacksize(attributes, &size) == 0 ? size : 8 << 20
  }

  /// Whether so much address space can be had beside what the process has.
  static func canReserve(_ size: Int) -> Bool {
    let space = mmap(nil, size, PROT_NONE, MAP_PRIVATE | anonymous, -1, 0)
    guard let space, space != MAP_FAILED else { return false }
    munmap(space, size)
    return true
  }

  /// Lets malloc share two arenas if the address space is limited; otherwise each thread reserves one of 64 MiB.
  /// - Returns: Whether the address space is limited.
  static func limitArenas() -> Bool {
    var limit = rlimit()
    #if canImport(Glibc)
      guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < rlim_t(Int.max)
      else { return false }
      // The header with its name cannot be imported.
      typealias Setter = @convention(c) (CInt, CInt) -> CInt
      let arenaMaximum: CInt = -8
      if let mallopt = dlsym(nil, "mallopt") { _ = unsafeBitCast(mallopt, to: Setter.self)(arenaMaximum, 2) }
      return true
    #else
      return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < rlim_t(Int.max)
    #endif
  }

  private static func makeAttributes() -> UnsafeMutablePointer<pthread_attr_t> {
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    pthread_attr_init(attributes)
    return attributes
  }

  private static func free(_ attributes: UnsafeMutablePointer<pthread_attr_t>) {
    pthread_attr_destroy(attributes)
    attributes.deallocate()
  }

  // MARK: What differs between systems

  #if canImport(Darwin)
    private static let anonymous = MAP_ANON

    private static func newThread() -> pthread_t? { nil }

    private static func create(
      _ thread: inout pthread_t?, _ attributes: UnsafePointer<pthread_attr_t>?, _ context: UnsafeMutableRawPointer,
      _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?
    ) -> CInt { pthread_create(&thread, attributes, body, context) }
  #else
    private static let anonymous = MAP_ANONYMOUS

    private static func newThread() -> pthread_t { pthread_t() }

    private static func create(
      _ thread: inout pthread_t, _ attributes: UnsafePointer<pthread_attr_t>?, _ context: UnsafeMutableRawPointer,
      _ body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    ) -> CInt { pthread_create(&thread, attributes, body, context) }
  #endif
}
