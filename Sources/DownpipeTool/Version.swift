/// The version of the package. Its only other place is the heading of its entry in the change log.
enum ToolVersion {
  static let current = "0.1.0"
}
