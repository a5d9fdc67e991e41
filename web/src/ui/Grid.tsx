import { flexRender, getCoreRowModel, useReactTable, type ColumnDef, type Row } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import { keepPlace, placeKept } from "./remembered";

type Props<T> = {
  label: string;
  rows: T[];
  /** The same array until a cell must look different: other columns draw every row anew. `size` is a width in pixels. */
  columns: ColumnDef<T>[];
  rowId: (row: T) => string;
  /** A field, or -field; columns whose id is in `sortable` can be sorted by the server. */
  sort?: string;
  onSort?: (sort: string) => void;
  sortable?: string[];
  hasMore?: boolean;
  isFetching?: boolean;
  onMore?: () => void;
  /** Under this key the place is kept to which somebody had scrolled, for when they come back. */
  place?: string;
};

const ROW = 41;
const AHEAD = 40;

/** A table of any length: only the rows in view exist, further ones are fetched as they are scrolled to. */
export function Grid<T>(props: Props<T>) {
  const { rows, hasMore = false, isFetching = false, onMore } = props;
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
    initialOffset: () => (props.place === undefined ? 0 : placeKept(props.place)),
    useFlushSync: false, // a frame moves what is drawn, the next one draws what came into view
  });
  const kept = props.place;
  const rest = rows.length > 0;
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || kept === undefined || !rest) return;
    element.scrollTop = placeKept(kept);
    const keep = () => keepPlace(kept, element.scrollTop);
    element.addEventListener("scroll", keep, { passive: true });
    return () => element.removeEventListener("scroll", keep);
  }, [kept, rest]);
  const shown = virtual.getVirtualItems();
  // The table knows the rows in view only: a model of tens of thousands is made anew with every page that comes.
  const [from, to] = [shown[0]?.index ?? 0, (shown[shown.length - 1]?.index ?? -1) + 1];
  const inView = useMemo(() => rows.slice(from, to), [rows, from, to]);
  const table = useReactTable({
    data: inView,
    columns: props.columns,
    getRowId: props.rowId,
    getCoreRowModel: getCoreRowModel(),
    manualSorting: true,
    manualPagination: true,
  });
  const last = shown[shown.length - 1]?.index ?? 0;
  useEffect(() => {
    if (hasMore && !isFetching && last >= rows.length - AHEAD) onMore?.();
  }, [hasMore, isFetching, last, rows.length, onMore]);

  const before = shown[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (shown[shown.length - 1]?.end ?? 0);
  const model = table.getRowModel().rows;
  const width = props.columns.length;
  return (
    <div className="grid" ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={hasMore ? -1 : rows.length + 1}>
        <colgroup>
          {table.getAllLeafColumns().map((column) => (
            <col key={column.id} style={{ width: column.getSize() }} />
          ))}
        </colgroup>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const field = header.column.id;
                const content = flexRender(header.column.columnDef.header, header.getContext());
                if (!props.sortable?.includes(field))
                  return (
                    <th key={header.id} scope="col">
                      {content}
                    </th>
                  );
                const down = props.sort === `-${field}`;
                const up = props.sort === field;
                return (
                  <th key={header.id} scope="col" aria-sort={down ? "descending" : up ? "ascending" : "none"}>
                    <button
                      type="button"
                      className="plain"
                      onClick={() => props.onSort?.(up ? `-${field}` : field)}
                    >
                      {content} <span aria-hidden="true">{down ? "▾" : up ? "▴" : "↕"}</span>
                    </button>
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {before > 0 && <Gap height={before} width={width} />}
          {shown.map((item, i) => {
            const row = model[i];
            return (
              row && (
                <Line
                  key={row.id}
                  row={row as Row<unknown>}
                  value={row.original}
                  columns={props.columns}
                  number={item.index + 2}
                />
              )
            );
          })}
          {after > 0 && <Gap height={after} width={width} />}
        </tbody>
      </table>
    </div>
  );
}

type LineProps = { row: Row<unknown>; value: unknown; columns: unknown; number: number };

/** The table makes new rows of the same values whenever others come into view: what is on the screen stays as it is. */
const Line = memo(
  ({ row, number }: LineProps) => (
    <tr aria-rowindex={number}>
      {row.getVisibleCells().map((cell) => (
        <td key={cell.id}>{flexRender(cell.column.columnDef.cell, cell.getContext())}</td>
      ))}
    </tr>
  ),
  (old, now) => old.value === now.value && old.columns === now.columns && old.number === now.number,
);

/** What is not drawn keeps its place. */
function Gap({ height, width }: { height: number; width: number }) {
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={width} style={{ height }} />
    </tr>
  );
}
