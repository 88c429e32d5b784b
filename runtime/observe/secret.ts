/**
 * A string that must not be printed. Every conversion to text yields `[secret]`; only `reveal()` returns the value.
 * Wrap the value when it is read (runtime/config), and reveal it when it is used.
 */
import { inspect } from 'node:util'

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The value itself. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}
