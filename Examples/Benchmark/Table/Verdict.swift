/// Whether a result of Downpipe is within a limit.
struct Verdict: Sendable {
  let text: String
  /// `nil` when it was not measured.
  let isMet: Bool?

  init(_ must: Must, for row: RowResult) {
    let measured = row.downpipe?.value(must.measure, downloads: row.downloads)
    func peer(_ name: String) -> Double? { row.entry(name)?.value(must.measure, downloads: row.downloads) }
    let limit: Double?
    let words: String
    var isStrict = false
    switch must.bound {
    case .best(let factor):
      limit = row.peers.compactMap { $0.value(must.measure) }.min().map { $0 * factor }
      words = "≤ \(Shown.ratio(factor)) of the best peer"
    case .program(let name, let factor):
      limit = peer(name).map { $0 * factor }
      words = "≤ \(Shown.ratio(factor)) of \(name)"
    case .less(let name):
      limit = peer(name)
      isStrict = true
      words = "< \(name)"
    case .ideal(let factor):
      limit = row.ideal.map { $0 * factor }
      words = "≤ \(Shown.ratio(factor)) of the ideal \(row.ideal.map { Shown.seconds($0) } ?? "")"
    case .value(let value):
      limit = value
      words = "≤ \(Shown.value(value, of: must.measure))"
    }
    guard let measured, let limit else {
      isMet = nil
      text = "\(must.measure.rawValue) \(words): not measured"
      return
    }
    let isMet = isStrict ? measured < limit : measured <= limit
    self.isMet = isMet
    text =
      "\(must.measure.rawValue) \(words): \(isMet ? "met" : "MISSED"), "
      + "\(Shown.value(measured, of: must.measure)) of at most \(Shown.value(limit, of: must.measure))"
  }
}
