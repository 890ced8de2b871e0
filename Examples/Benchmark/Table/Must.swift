/// A limit for a result of Downpipe.
struct Must: Sendable {
  enum Measure: String, Sendable {
    case wall, cpu = "CPU", memory = "peak memory", memoryEach = "memory for each download", fetched = "bytes fetched"
  }

  enum Bound: Sendable {
    /// Of the best peer in this measure.
    case best(Double)
    case program(String, Double)
    case less(thanProgram: String)
    case ideal(Double)
    case value(Double)
  }

  let measure: Measure
  let bound: Bound

  static func wall(_ bound: Bound) -> Must { Must(measure: .wall, bound: bound) }
  static func cpu(_ bound: Bound) -> Must { Must(measure: .cpu, bound: bound) }
  static func memory(_ bytes: Int) -> Must { Must(measure: .memory, bound: .value(Double(bytes))) }
  static func memoryEach(_ bytes: Int) -> Must { Must(measure: .memoryEach, bound: .value(Double(bytes))) }
  static func fetched(_ bytes: Double) -> Must { Must(measure: .fetched, bound: .value(bytes)) }
}
