/// What libFuzzer calls with each input. Its own `main`, which the linker finds beside ours, needs the name.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  Fuzzing.shared.run(FuzzInput(Array(UnsafeBufferPointer(start: bytes, count: count))))
  return 0
}
