#if canImport(Darwin)
  import Darwin
#else
  import CCrypto
#endif

/// Compares secrets in a time that depends on their lengths only, and not on where they differ.
package func constantTimeEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  guard first.count == second.count else { return false }
  #if canImport(Darwin)
    return timingsafe_bcmp(first, second, first.count) == 0
  #else
    return CRYPTO_memcmp(first, second, first.count) == 0
  #endif
}
