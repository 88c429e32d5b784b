/**
 * Polyfills the three functions from the metadata reflection proposal that the X.509 library needs while it loads.
 *
 * The library's dependency container stores constructor metadata on `Reflect`. The polyfill omits property metadata,
 * which the library does not use.
 */
interface MetadataReflect {
  getMetadata?: (key: unknown, target: object) => unknown
  getOwnMetadata?: (key: unknown, target: object) => unknown
  defineMetadata?: (key: unknown, value: unknown, target: object) => void
}

/** Adds the missing functions to the global `Reflect`. Does nothing if the functions already exist. */
export function provideReflectMetadata(): void {
  const reflect: typeof Reflect & MetadataReflect = Reflect
  if (reflect.getMetadata) return
  const metadata = new WeakMap<object, Map<unknown, unknown>>()
  const own = (key: unknown, target: object): unknown => metadata.get(target)?.get(key)

  reflect.getOwnMetadata = own
  reflect.getMetadata = function getMetadata(key, target) {
    for (let at: object | null = target; at; at = Reflect.getPrototypeOf(at)) {
      if (metadata.get(at)?.has(key)) return own(key, at)
    }
    return undefined
  }
  reflect.defineMetadata = function defineMetadata(key, value, target) {
    const entries = metadata.get(target) ?? new Map<unknown, unknown>()
    metadata.set(target, entries.set(key, value))
  }
}
