/// What the user sets. The ledger keeps it.
struct Settings: Codable, Sendable, Equatable {
  /// The number of files that are transferred at once.
  var atOnce = 2
  /// Whether mobile networks may be used.
  var allowsCellular = false
}
