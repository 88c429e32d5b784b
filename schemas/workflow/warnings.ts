/** Warns about valid workflow settings that are usually mistakes. */
import { fieldsOf } from '../validation/fields.ts'
import type { CompositeTool } from '../generated/types.ts'
import { conditionIn } from './typed-text.ts'

/** Maximum nesting depth that is checked. */
const maxDepth = 20

/** Returns one line for each warning. kubectl shows 120 characters of each line. */
export function workflowWarnings({ name, steps, nestedTemplates }: CompositeTool): string[] {
  return steps.flatMap(({ id, arguments: own, condition, step, defaultResults }) => {
    const nested = [own, step?.arguments].flatMap((values) =>
      Object.entries(fieldsOf(values)).flatMap(([argument, value]) =>
        nestedTemplates !== true && typeof value !== 'string' && hasBraces(value, 0)
          ? [
              `{{ in ${clip(id)}.${clip(argument)} is not evaluated: only strings at the first level are templates (nestedTemplates)`,
            ]
          : [],
      ),
    )
    const fixed = hasBraces(defaultResults, 0)
      ? [`{{ in ${clip(id)}.defaultResults is not evaluated: default results cannot contain templates`]
      : []
    const undecided = [condition, step?.condition].some(isUndecided)
      ? [`the condition of ${clip(id)} fails in every run: it is a string, but must be true or false`]
      : []
    return [...nested, ...fixed, ...undecided].map((what) => `${clip(name)}: ${what}`)
  })
}

/** Finds conditions without an action, which have the same result in every run. */
function isUndecided(condition: string | undefined): boolean {
  return (
    condition !== undefined &&
    condition !== '' &&
    !condition.includes('{{') &&
    conditionIn(condition) === undefined
  )
}

function clip(text: string): string {
  return text.length > 16 ? `${text.slice(0, 15)}…` : text
}

function hasBraces(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.includes('{{')
  if (typeof value !== 'object' || value === null || depth > maxDepth) return false
  return Object.values(value).some((inner) => hasBraces(inner, depth + 1))
}
