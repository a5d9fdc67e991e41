const LARGEST = 500_000;
const SIDE = 512;

/** A large photograph, shrunk to more than any model looks at: what is asked about need not be sent whole. */
export async function shrunk(picture: Blob): Promise<Blob> {
  if (picture.size <= LARGEST) return picture;
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(picture);
  } catch {
    return picture; // a kind that this browser cannot read: the server says what it thinks of it
  }
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const sheet = new OffscreenCanvas(Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
  sheet.getContext("2d")!.drawImage(bitmap, 0, 0, sheet.width, sheet.height);
  bitmap.close();
  return sheet.convertToBlob({ type: "image/jpeg", quality: 0.92 });
}
