/**
 * A string that must not be printed. Every conversion to text yields `[secret]`; only `reveal()` returns the value.
 * Wrap the value when you read it (runtime/config), and reveal it when you use it.
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
