export type Scalar = string | number | boolean | null;

/** The fields of an input that is one flat object, as a row of a table is; null for everything else. */
export function fieldsOf(text: string): Record<string, Scalar> | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const found = Object.entries(value);
  const flat =
    found.length > 0 &&
    found.every(([name, part]) => !name.startsWith("$") && (part === null || typeof part !== "object"));
  return flat ? (value as Record<string, Scalar>) : null;
}

/** What somebody typed into a field that held `before`: a number stays one where it can, nothing is a missing value. */
export function typed(text: string, before: Scalar): Scalar {
  if (text.trim() === "") return null;
  const number = Number(text.replace(",", "."));
  const numeric = before === null || !Number.isNaN(Number(before)); // a table's cells are kept as they were written
  return numeric && !Number.isNaN(number) ? number : text;
}
