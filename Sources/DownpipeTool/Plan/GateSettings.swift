import Downpipe

/// The gates of a command.
struct GateSettings: Sendable, Hashable {
  /// A part of each day.
  struct Window: Sendable, Hashable {
    var from: TimeOfDay
    var to: TimeOfDay

    /// Parses `HH:MM-HH:MM`, also with an en dash.
    init?(_ text: String) {
      let parts = text.split(separator: text.contains("–") ? "–" : "-", omittingEmptySubsequences: false)
      guard parts.count == 2, let from = TimeOfDay(parts[0]), let to = TimeOfDay(parts[1]), from != to else {
        return nil
      }
      self.from = from
      self.to = to
    }

    /// The window in the local time zone.
    var daily: DailyWindow { DailyWindow(from: from, to: to) }
  }

  var wifiOnly = false
  var window: Window?
  /// The bytes that stay free; 0 for none, also beside downloads of known size.
  var minFree: Int64?

  /// The gates.
  ///
  /// - Parameter directory: a folder on the disk whose free space counts.
  func gates(directory: String) -> [any Gate] {
    var gates: [any Gate] = []
    if wifiOnly { gates.append(WiFiOnly()) }
    if let window { gates.append(TimeWindow(from: window.from, to: window.to)) }
    if let minFree, minFree > 0 { gates.append(DiskSpace(reserve: minFree, at: directory)) }
    return gates
  }
}
