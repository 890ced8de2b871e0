import Foundation

/// Raises the number of descriptors that the process may have open. Shells start programs with 1,024 or 256 for the
/// sake of select(2); the administrator's limit is the hard one.
enum DescriptorLimit {
  /// More than the highest number of concurrent downloads needs.
  private static let enough: rlim_t = 65_536

  /// Raises the soft limit to the hard one, or to what is enough. A failure changes nothing.
  static func raise() {
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < enough else { return }
    let wanted = min(limit.rlim_max, enough)
    guard wanted > limit.rlim_cur else { return }
    limit.rlim_cur = wanted
    if setrlimit(resource, &limit) == 0 { return }
    #if canImport(Darwin)
      // Without a hard limit, the kernel's own is smaller.
      limit.rlim_cur = min(wanted, rlim_t(OPEN_MAX))
      _ = setrlimit(resource, &limit)
    #endif
  }
}
