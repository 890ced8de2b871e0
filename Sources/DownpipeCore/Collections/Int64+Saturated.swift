extension Int64 {
  /// Returns the sum, or the nearest representable number on overflow.
  package func addingSaturated(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other > 0 ? .max : .min) : sum
  }
}
