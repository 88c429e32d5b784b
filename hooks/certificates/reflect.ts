/**
 * The three functions of the metadata reflection proposal that the X.509 library asks for when it is loaded.
 *
 * The library's dependency container keeps its constructor notes on `Reflect`. Nothing is installed when the running
 * process has the functions already. Does not implement property metadata: nothing here uses it.
 */
interface MetadataReflect {
  getMetadata?: (key: unknown, target: object) => unknown
  getOwnMetadata?: (key: unknown, target: object) => unknown
  defineMetadata?: (key: unknown, value: unknown, target: object) => void
}

/** Adds the missing functions to the global `Reflect`; safe to call more than once. */
export function provideReflectMetadata(): void {
  const reflect: typeof Reflect & MetadataReflect = Reflect
  if (reflect.getMetadata) return
  const notes = new WeakMap<object, Map<unknown, unknown>>()
  const own = (key: unknown, target: object): unknown => notes.get(target)?.get(key)

  reflect.getOwnMetadata = own
  reflect.getMetadata = function getMetadata(key, target) {
    for (let at: object | null = target; at; at = Reflect.getPrototypeOf(at)) {
      if (notes.get(at)?.has(key)) return own(key, at)
    }
    return undefined
  }
  reflect.defineMetadata = function defineMetadata(key, value, target) {
    const entries = notes.get(target) ?? new Map<unknown, unknown>()
    notes.set(target, entries.set(key, value))
  }
}
