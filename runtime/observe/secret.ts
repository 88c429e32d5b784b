/**
 * A string that must not be printed. Every way of turning it into text yields `[secret]`; only `reveal()` gives the
 * value. Wrap at the moment of reading (runtime/config), reveal at the moment of use.
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
