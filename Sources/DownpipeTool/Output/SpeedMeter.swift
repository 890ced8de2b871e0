import Foundation

/// The speed of the whole over the last few seconds.
struct SpeedMeter {
  private var samples: [(date: Date, bytes: Int64)] = []
  private let window: TimeInterval = 4

  /// Notes how many bytes have been fetched in all by now.
  mutating func note(_ bytes: Int64, at now: Date) {
    // Two samples in a tenth of a second say no more than one.
    if let last = samples.last, now.timeIntervalSince(last.date) < 0.09, samples.count > 1 {
      samples[samples.count - 1].bytes = max(last.bytes, bytes)
      return
    }
    samples.append((now, max(samples.last?.bytes ?? 0, bytes)))
    while samples.count > 2, now.timeIntervalSince(samples[0].date) > window { samples.removeFirst() }
  }

  /// Bytes a second; `nil` until there is something to tell.
  var bytesPerSecond: Double? {
    guard let first = samples.first, let last = samples.last else { return nil }
    let time = last.date.timeIntervalSince(first.date)
    return time > 0.2 ? Double(last.bytes - first.bytes) / time : nil
  }
}
