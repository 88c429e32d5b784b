/** Checks a document, its defaults filled in, by its definition: the schema, then the rules, all violations in one list. */
import type { SchemaError } from '../schema.ts'
import { definition } from './bundle.ts'
import { violationsOf } from './messages.ts'
import { checkRules } from './rules.ts'
import type { Violation } from './violations.ts'

type Validator = ((data: unknown) => boolean) & { errors?: readonly SchemaError[] | null }

/** A check with the compiled validators of some definitions. It throws for the name of another. */
export function checker(validators: Readonly<Record<string, Validator>>) {
  return (name: string, document: unknown): Violation[] => {
    const validate = validators[name]
    if (!validate) throw new Error(`no validator is called ${name}`)
    const schema = definition(name)
    const violations = validate(document) ? [] : violationsOf(schema, document, validate.errors ?? [])
    const all = [...violations, ...checkRules(schema, document, '', violations)]
    return all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  }
}
