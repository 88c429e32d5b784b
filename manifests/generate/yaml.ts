/** Writes objects as YAML and JSON files. */
import { Document } from 'yaml'
import { quotedForKubectl, writeYaml } from '../../schemas/yaml/index.ts'

const header = '# Written by manifests/generate; change the generator, not this file.\n'

/** Formats objects as one YAML stream with a note that the file is generated. */
export function yamlFile(objects: readonly object[]): string {
  return header + objects.map(yamlObject).join('---\n')
}

/** Formats JSON with lists of plain values on one line, as this project's formatter does. */
export function jsonFile(value: object): string {
  const text = JSON.stringify(value, null, 2)
  return `${text.replaceAll(/\[\s+([^[\]{}]*?)\s+\]/g, (_list, items: string) => `[${items.replaceAll(/\s*\n\s*/g, ' ')}]`)}\n`
}

export function yamlValue(value: unknown): string {
  return writeYaml(value)
}

function yamlObject(object: object): string {
  // Writes repeated objects in full instead of aliases.
  return new Document(object, { aliasDuplicateObjects: false, ...quotedForKubectl }).toString({
    lineWidth: 0,
  })
}
