"""Java's heap in JVMs that tests share."""

HEAP = "-XX:+UseSerialGC -Xms512m -Xmn256m -XX:MetaspaceSize=192m"
"""Options of a heap that does not shrink. With the product's heap, which does, garbage collection took a tenth of the
processor time of the shared session's JVM.
"""
