import Foundation

/// Memory that was freed and is needed again soon.
enum FreedMemory {
  /// Lets malloc keep up to 32 MiB that were freed, and as much as a receive buffer in its heaps. By default it gives the
  /// buffer of each transfer back to the system, which then clears the same pages for the next one: 4 to 9 % of the CPU time
  /// of small files.
  static func keep() {
    #if canImport(Glibc)
      // The header with these names cannot be imported.
      typealias Setter = @convention(c) (CInt, CInt) -> CInt
      let (trimThreshold, topPad, mmapThreshold): (CInt, CInt, CInt) = (-1, -2, -3)
      guard let symbol = dlsym(nil, "mallopt") else { return }
      let mallopt = unsafeBitCast(symbol, to: Setter.self)
      _ = mallopt(trimThreshold, 32 << 20)
      _ = mallopt(topPad, 1 << 20)
      _ = mallopt(mmapThreshold, 1 << 20)
    #endif
  }
}
