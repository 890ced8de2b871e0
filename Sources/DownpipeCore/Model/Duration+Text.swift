extension Duration {
  /// The duration in seconds, to the millisecond, as error messages show it: “1 second”, “0.3 seconds”.
  package var inSeconds: String {
    let (seconds, attoseconds) = components
    let milliseconds = String((attoseconds / 1_000_000_000_000_000).magnitude)
    var fraction = (String(repeating: "0", count: 3 - milliseconds.count) + milliseconds)[...]
    while fraction.last == "0" { fraction.removeLast() }
    let sign = self < .zero && seconds == 0 ? "-" : ""
    let number = sign + "\(seconds)" + (fraction.isEmpty ? "" : "." + fraction)
    return number + (number == "1" ? " second" : " seconds")
  }
}
