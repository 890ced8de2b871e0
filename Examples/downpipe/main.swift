import ArgumentParser
print("stub")
