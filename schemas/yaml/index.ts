/**
 * YAML that every reader takes alike: what kubectl, which reads by the rules of YAML 1.1, would take for another type (`yes`,
 * `on`, `0777`) is quoted.
 */
import { Schema, type ScalarTag, stringify } from 'yaml'

const radixes: Readonly<Record<string, number>> = { o: 8, X: 16, B: 2 }

/** `0o17`, `0X1F` and `0B1`, which kubectl knows as well. */
export const otherIntegers: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0(?:o[0-7]+|X[\da-fA-F]+|B[01]+)$/,
  resolve(text) {
    const [, sign, letter = '', digits = ''] = /^([-+]?)0(.)(.+)$/.exec(text) ?? []
    return (sign === '-' ? -1 : 1) * Number.parseInt(digits, radixes[letter])
  },
}

/** For a document that is made node by node. */
export const quotedForKubectl = { compat: [...new Schema({ schema: 'yaml-1.1' }).tags, otherIntegers] }

/** One document, with a line end. */
export function writeYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, ...quotedForKubectl })
}
