#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// How many files and connections the process may have open. Shells start programs with 1,024 or 256, which is a
/// limit for the sake of select(2); what the administrator means is the hard one.
enum DescriptorLimit {
  /// More than the most downloads at once need.
  private static let enough: rlim_t = 65_536

  /// Raises the soft limit to the hard one, or to what is enough. Where that cannot be done everything works as before,
  /// with fewer descriptors.
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
      // Where there is no hard limit, the kernel's own is smaller.
      limit.rlim_cur = min(wanted, rlim_t(OPEN_MAX))
      _ = setrlimit(resource, &limit)
    #endif
  }
}
