/** Variables that servers in clients' files refer to. */
import { own } from '../../../schemas/index.ts'
import { type ClientEntry, type Reference, referencesOf } from '../clients/index.ts'

export type ReferenceLookup = (reference: Reference) => string | undefined

/** Returns a lookup of environment variables and inputs. A default takes precedence over an empty variable. */
export function referenceLookup(env: Readonly<Record<string, string | undefined>>): ReferenceLookup {
  return ({ kind, name, fallback }) => {
    if (kind !== 'env' && kind !== 'input') return undefined
    const value = own(env, name)
    return value === '' && fallback !== undefined ? fallback : value
  }
}

/** Returns the names of the variables that have no value. */
export function unresolvedNames(entry: ClientEntry, lookup: ReferenceLookup): readonly string[] {
  return referencesOf(entry).flatMap((reference) => {
    const { kind, name, fallback } = reference
    const isVariable = kind === 'env' || kind === 'input'
    return isVariable && (lookup(reference) ?? fallback) === undefined ? [name] : []
  })
}
