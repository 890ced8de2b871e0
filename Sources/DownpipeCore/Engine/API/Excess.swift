/// What happens to downloads that run beyond lowered limits.
public enum Excess: Sendable, Hashable {
  /// The downloads that the scheduling policy ranks last go back to waiting at once; they keep their bytes.
  case stops
  /// They run until they end. No further download starts until there is room.
  case finishes
}
