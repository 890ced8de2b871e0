extension UInt128 {
  /// The FNV-1a hash of bytes, with 128 bits: the same in every process, and no protection against collisions on purpose.
  package init(fnv1a bytes: some Sequence<UInt8>) {
    self = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
    for byte in bytes { self = (self ^ UInt128(byte)) &* 0x0000_0000_0100_0000_0000_0000_0000_013B }
  }
}
