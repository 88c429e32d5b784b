/**
 * Writes YAML that every reader takes alike: what kubectl, which reads by the rules of YAML 1.1, would take for another
 * type (`yes`, `on`, `0777`) is quoted.
 */
import { Schema, stringify } from 'yaml'
import { otherIntegers } from './yaml.ts'

/** For a document that is made node by node. */
export const quotedForKubectl = { compat: [...new Schema({ schema: 'yaml-1.1' }).tags, otherIntegers] }

/** One document, with a line end. */
export function writeYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, ...quotedForKubectl })
}
