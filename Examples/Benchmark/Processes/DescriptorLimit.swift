#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The number of files and connections that this process and those that it starts may have open (`ulimit -n`).
enum DescriptorLimit {
  /// Raises the limit, the hard one too where the user may.
  ///
  /// - Returns: The limit now.
  @discardableResult
  static func raise(to wanted: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return 0 }
    guard limit.rlim_cur < wanted else { return Int(clamping: limit.rlim_cur) }
    var raised = rlimit(rlim_cur: rlim_t(wanted), rlim_max: max(limit.rlim_max, rlim_t(wanted)))
    if setrlimit(resource, &raised) == 0 { return wanted }
    raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
    return setrlimit(resource, &raised) == 0 ? Int(clamping: limit.rlim_max) : Int(clamping: limit.rlim_cur)
  }

  #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    private static let resource = RLIMIT_NOFILE
  #endif
}

/// The monotonic clock of the system, which the launcher reads too.
enum MonotonicClock {
  static var nanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
