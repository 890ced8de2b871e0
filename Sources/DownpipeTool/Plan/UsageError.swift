/// The command line cannot be used as it is: exit status 2.
struct UsageError: Error, CustomStringConvertible {
  /// What is wrong, and what to do.
  let description: String

  init(_ description: String) { self.description = description }
}
